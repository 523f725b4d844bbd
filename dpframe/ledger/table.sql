-- A ledger in PostgreSQL: statements with empty lines between them; postgres.py fills in @words@.

CREATE TABLE @table@ (number integer PRIMARY KEY,
  body text NOT NULL CHECK (octet_length(body) < 4194304), hash text NOT NULL)

COMMENT ON TABLE @table@ IS '@mark@'

CREATE TABLE IF NOT EXISTS @leases@ (release_id text PRIMARY KEY, epoch integer NOT NULL,
  owner text NOT NULL CHECK (octet_length(owner) < 65536),
  beat double precision NOT NULL, expires double precision NOT NULL)

CREATE OR REPLACE FUNCTION @function@() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog AS $$
DECLARE
  last record;
  read jsonb;
  told jsonb;
  given text;
BEGIN
  IF TG_OP <> 'INSERT' THEN
    RAISE EXCEPTION 'a ledger can only grow at its end';
  END IF;
  SELECT * INTO last FROM @table@ ORDER BY number DESC LIMIT 1;
  IF NEW.number IS DISTINCT FROM coalesce(last.number + 1, 0)
    OR NEW.hash IS DISTINCT FROM encode(sha256(convert_to(
      coalesce(last.hash, repeat('0', 64)) || chr(10) || NEW.body, 'UTF8')), 'hex')
  THEN
    RAISE EXCEPTION 'a ledger can only grow at its end';
  END IF;
  IF pg_has_role(session_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'MEMBER') THEN
    RETURN NEW;
  END IF;
  read := NEW.body::jsonb;
  IF NEW.number = 0 OR octet_length(NEW.body) > @most_bytes@ OR jsonb_typeof(read) <> 'object' THEN
    RAISE EXCEPTION 'not a row of a ledger' USING ERRCODE = '22000';
  END IF;
  IF (SELECT count(*) FROM jsonb_object_keys(read)) = 1 AND read - @marks@ = '{}' THEN
    SELECT value INTO told FROM jsonb_each(read);
    IF (jsonb_typeof(told) = 'object' AND told ?& @run_keys@ AND told - @run_keys@ = '{}'
      AND NOT EXISTS (SELECT FROM jsonb_each(told) WHERE jsonb_typeof(value) <> CASE key
        WHEN 'epoch' THEN 'number' WHEN 'digests' THEN 'array' ELSE 'string' END)
      AND told ->> 'epoch' ~ '^[0-9]{1,9}$'
      AND NOT EXISTS (SELECT FROM jsonb_array_elements(told -> 'digests')
        WHERE jsonb_typeof(value) <> 'string')
      AND (NOT read ? 'drawn' OR jsonb_array_length(told -> 'digests') = 1)
    ) IS NOT TRUE THEN
      RAISE EXCEPTION 'not a row about a run' USING ERRCODE = '22000';
    END IF;
    RETURN NEW;
  END IF;
  IF starts_with(NEW.body, '{"protected":') AND read - 'protected' = '{}' THEN
    IF (jsonb_typeof(read #> '{protected,unit}') IN ('string', 'null')
      AND read #>> '{protected,neighboring}' = ANY (@relations@)
      AND NOT EXISTS (SELECT FROM @table@ WHERE starts_with(body, '{"protected":'))) IS NOT TRUE
    THEN
      RAISE EXCEPTION 'not whom a ledger protects' USING ERRCODE = '22000';
    END IF;
    RETURN NEW;
  END IF;
  IF NOT read ?& @entry_keys@ OR read - @entry_keys@ <> '{}' THEN
    RAISE EXCEPTION 'only who owns the ledger may write such a row' USING ERRCODE = '42501';
  END IF;
  IF (NOT EXISTS (SELECT FROM jsonb_each(read) WHERE CASE
      WHEN key = ANY (@texts@) THEN jsonb_typeof(value) <> 'string'
      WHEN key = ANY (@texts_or_none@) THEN jsonb_typeof(value) NOT IN ('string', 'null')
      ELSE false END)
    AND NOT EXISTS (SELECT FROM jsonb_array_elements(read -> 'columns')
      WHERE jsonb_typeof(value) <> 'string')
    AND (jsonb_typeof(read -> 'source') = 'null'
      OR (read -> 'source') ?& @source_keys@ AND (read -> 'source') - @source_keys@ = '{}'
      AND jsonb_typeof(read #> '{source,manifest}') = 'string'
      AND jsonb_typeof(read #> '{source,unit}') = 'array'
      AND jsonb_typeof(read #> '{source,door}') IN ('string', 'null')
      AND jsonb_typeof(read #> '{source,part}') IN ('string', 'null')
      AND NOT EXISTS (SELECT FROM jsonb_array_elements(read #> '{source,unit}')
        WHERE jsonb_typeof(value) NOT IN ('string', 'null')))
    AND (read -> 'loss') ?& @loss_keys@ AND (read -> 'loss') - @loss_keys@ = '{}'
    AND (read -> 'spend') ?& @spend_keys@ AND (read -> 'spend') - @spend_keys@ = '{}'
    AND read #>> '{spend,kind}' = ANY (@kinds@)
    AND jsonb_typeof(read #> '{spend,delta}') IN ('number', 'null')
    AND coalesce(length(read #>> '{spend,delta}') < @most_digits@, true)
    AND (read ->> 'part' IS NULL OR (length(read ->> 'part') BETWEEN 1 AND 200
      AND read ->> 'part' !~ '[\x01-\x1f]'
      AND (SELECT body::jsonb ->> 'part' FROM @table@ WHERE number = 0) IS NOT NULL))
  ) IS NOT TRUE THEN
    RAISE EXCEPTION 'not an entry of a ledger' USING ERRCODE = '22000';
  END IF;
  FOREACH given IN ARRAY ARRAY[@amounts@] LOOP
    IF (given ~ '@amount@' AND length(given) < CASE
        WHEN starts_with(given, '0x') THEN @most_characters@ ELSE @most_digits@ END
      AND length(split_part(given, '/', 1)) < length(split_part(given, '/', 2)) + @beyond@
    ) IS NOT TRUE THEN
      RAISE EXCEPTION 'not an amount of a ledger' USING ERRCODE = '22000';
    END IF;
  END LOOP;
  RETURN NEW;
END
$$

CREATE TRIGGER only_grows BEFORE INSERT OR UPDATE OR DELETE ON @table@
FOR EACH ROW EXECUTE FUNCTION @function@()

CREATE TRIGGER is_never_emptied BEFORE TRUNCATE ON @table@
FOR EACH STATEMENT EXECUTE FUNCTION @function@()
