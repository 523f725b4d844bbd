"""Plans that name production data: stores, patterns, folders, and variables of the environment."""

import io
import json
from pathlib import Path

import pytest
from support.planning import TRIPS, Overrides, planned, read_plan
from support.terminal import LATER, SOUND, UNREADABLE, main

from dpframe import Ledger
from dpframe.sources.manifest import expand

MARCH = ("--set", "month=2024-03", "--quiet")
S3 = (
    'filesystem = { type = "s3", endpoint_override = "${STORE}", '
    'access_key = "${STORE_KEY}", secret_key = "${STORE_SECRET}" }'
)


def reading(folder, path, more=""):
    """Write a plan that reads other data."""
    return planned(folder, ('path = "trips-{month}.csv"', f'path = "{path}"\n{more}'))


def release(plan, *more):
    return main(["release", str(plan), *MARCH, *more])


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize(
    "path",
    [
        "by.month/",
        "by.month",
        "by.month/*.parquet",
        "by.month/[ab].parquet",
        "**/?.parquet",
        "~/by.month",
        "${TRIPS_HOME}/by.month",
        "./{month}[1]*.parquet",
    ],
)
def test_parquet_files_are_found(tmp_path, monkeypatch, capsys, path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TRIPS_HOME", str(tmp_path))
    (tmp_path / "by.month").mkdir()
    for place in ("by.month/a.parquet", "by.month/b.parquet", "2024-031.parquet"):
        TRIPS.to_parquet(tmp_path / place)
    plan = reading(tmp_path, path, 'spill_folder = "by.month"')
    assert main(["preview", str(plan), *MARCH[:2]]) == SOUND
    assert release(plan) == SOUND
    assert "TRIPS_HOME" not in path or "${TRIPS_HOME}/by.month" in capsys.readouterr().out


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize(
    "given",
    [
        ("none-*.parquet", "", "there is no file"),
        ("${UNSET_VARIABLE}/trips", "", "${UNSET_VARIABLE} must be set"),
        ("${SHORT}/trips", "", "at least 4 characters"),
        ("by.month", "", "must name Parquet"),
        ("s3://trips/{month}.csv", "", "in a store, Parquet alone"),
        ("trips.parquet", 'spill_folder = "none"', "spill_folder"),
        ("trips", 'filesystem = { type = "ftp" }', "must be one of s3"),
        ("trips", 'filesystem = { type = "s3", secret_key = "abc" }', "must not stand in a plan"),
        ("trips", 'filesystem = { type = "s3", colour = "red" }', "cannot be made with colour"),
        ("trips", 'filesystem = { region = "x" }', "type is missing"),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path, monkeypatch, capsys, given):
    path, more, words = given
    monkeypatch.setenv("SHORT", "abc")
    TRIPS.to_parquet(tmp_path / "trips.parquet")
    assert release(reading(tmp_path, path, more)) == UNREADABLE
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("key", ["name", "note"])
def test_variables_stand_in_paths_alone(tmp_path, monkeypatch, capsys, key):
    monkeypatch.setenv("MONTH", "2024-03")
    named = f'share = "1/12"\n{key} = "of ${{MONTH}} {{month}}"'
    plan = planned(tmp_path, ('share = "1/12"', named))
    if key == "name":
        plan.write_text(plan.read_text().replace('name = "trips {month}"\n', ""))
    assert main(["release", str(plan), *MARCH]) == UNREADABLE
    assert "in paths and in filesystem alone" in capsys.readouterr().err


def test_a_value_that_is_given_leads_to_no_home(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", "/nowhere")
    plan = planned(tmp_path, ('"{query}-{month}.csv"', '"{month}-{query}.csv"'))
    given = ["--set", "month=~", "--data", str(tmp_path / "trips-2024-03.csv")]
    assert main(["release", str(plan), *given, "--quiet"]) == SOUND
    assert (tmp_path / "~-fares.csv").is_file()


def test_a_value_that_is_given_names_no_variable(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HIDDEN", "not-to-be-seen")
    plan = planned(tmp_path)
    assert main(["preview", str(plan), "--set", "month=${HIDDEN}"]) == UNREADABLE
    err = capsys.readouterr().err
    assert "${HIDDEN}" in err and "not-to-be-seen" not in err


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("more", [(), ("--json",)])
@pytest.mark.parametrize("place", ["data", "ledger", "files", "no ledger"])
def test_values_of_variables_are_in_no_message(tmp_path, monkeypatch, capsys, place, more):
    hidden = tmp_path / 'se"cret folder'
    hidden.mkdir()
    monkeypatch.setenv("HIDDEN", str(hidden))
    old = {"data": "trips-{month}.csv", "files": "{query}-{month}.csv"}.get(place, "trips.ledger")
    plan = planned(tmp_path, (f'"{old}"', f'"${{HIDDEN}}/{old}"'))
    for name in ("trips-2024-03.csv", "trips.ledger"):
        if place != "no ledger":
            (hidden / name).write_bytes((tmp_path / name).read_bytes())
    code = UNREADABLE if place == "no ledger" else SOUND
    for command in ("preview", "release"):
        assert main([command, str(plan), *MARCH[:2], *more]) == code
        out, err = capsys.readouterr()
        told = out + err
        assert "cret folder" not in told
        assert "${HIDDEN}" in told or more or command == "release"
        if more:
            assert json.loads(out)


@pytest.mark.parametrize("value", ["a\tsecret  value\n", "se\x1bcret", "sec ret"])
def test_a_value_with_odd_spaces_is_in_no_message(tmp_path, monkeypatch, capsys, value):
    monkeypatch.setenv("HIDDEN", value)
    plan = planned(tmp_path, ('"trips.ledger"', '"${HIDDEN}/trips.ledger"'))
    for command in ("preview", "release"):
        assert main([command, str(plan), *MARCH[:2]]) == UNREADABLE
        told = "".join(capsys.readouterr())
        assert "${HIDDEN}" in told
        assert "sec" not in told and "cret" not in told


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_url_in_a_variable_shows_no_host_and_no_database(tmp_path, monkeypatch, capsys, more):
    pytest.importorskip("psycopg")
    url = "postgresql://anna:pw@localhost:1/code?ledger=visits"
    monkeypatch.setenv("LEDGER_URL", url)
    plan = planned(tmp_path, ('"trips.ledger"', '"${LEDGER_URL}"'))
    for command in ("preview", "release"):
        assert main([command, str(plan), *MARCH[:2], *more]) == LATER
        out, err = capsys.readouterr()
        told = out + err
        assert "${LEDGER_URL}" in told
        assert "localhost" not in told and "/code" not in told and "anna" not in told
        if more:
            assert json.loads(out)["code"] == LATER


def test_variables_of_one_command_do_not_change_what_another_says(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ODD", "budget")
    assert release(reading(tmp_path, "${ODD}.parquet")) == UNREADABLE
    assert main(["preview", str(tmp_path / "budget.toml")]) == UNREADABLE
    assert "budget.toml" in capsys.readouterr().err


def test_a_hash_of_a_plan_holds_no_variable(tmp_path, monkeypatch):
    plan, digests = reading(tmp_path, "${PLACE}/trips.parquet"), set()
    for value in ("/one", "/another"):
        monkeypatch.setenv("PLACE", value)
        digests.add(read_plan(plan, Overrides({"month": "2024-03"})).digest)
    assert len(digests) == 1


class Files:
    """Lists files as a store does."""

    def __init__(self, *paths):
        self.paths = paths

    def get_file_info(self, _):
        from pyarrow import fs

        return [fs.FileInfo(path, fs.FileType.File) for path in self.paths]


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("b/t/*.parquet", ["b/t/1.parquet", "b/t/2.parquet"]),
        ("b/t/?.parquet", ["b/t/1.parquet", "b/t/2.parquet"]),
        ("b/**/1.parquet", ["b/t/1.parquet", "b/t/u/1.parquet"]),
        ("b/t/u/[0-9].parquet", ["b/t/u/1.parquet"]),
        ("b/t/1.parquet", ["b/t/1.parquet"]),
    ],
)
def test_patterns_of_stores_match_folder_by_folder(pattern, wanted):
    files = Files("b/t/2.parquet", "b/t/1.parquet", "b/t/u/1.parquet", "b/t/1.csv")
    assert expand(pattern, files) == wanted


@pytest.fixture(scope="module")
def s3():
    """Serve a store that speaks as S3 does, on this machine."""
    server_of = pytest.importorskip("moto.server")
    boto3 = pytest.importorskip("boto3")
    server = server_of.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    place = "http://{}:{}".format(*server.get_host_and_port())
    known = {"aws_access_key_id": "public-key", "aws_secret_access_key": "hidden-secret"}
    client = boto3.client("s3", endpoint_url=place, region_name="us-east-1", **known)
    client.create_bucket(Bucket="visits")
    data = io.BytesIO()
    TRIPS.to_parquet(data)
    for name in ("2024-03/a.parquet", "2024-03/b.parquet", "2024-04/a.parquet"):
        client.put_object(Bucket="visits", Key=f"trips.v2/{name}", Body=data.getvalue())
    yield place
    server.stop()


@pytest.mark.full
@pytest.mark.server
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of packages that serve the store
def test_a_plan_reads_a_store(tmp_path, monkeypatch, capsys, s3):
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name, value in (("STORE", s3), ("STORE_KEY", "public-key")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("STORE_SECRET", "hidden-secret")
    host = s3.removeprefix("http://")
    address = f"s3://public-key:${{STORE_SECRET}}@visits/trips.v2/{{month}}/?scheme=http&endpoint_override={host}"
    for number, (path, more) in enumerate(
        [
            ("s3://visits/trips.v2/{month}/", S3),
            ("visits/trips.v2/{month}/*.parquet", S3),
            (address, ""),
        ]
    ):
        folder = Path(tmp_path, str(number))
        folder.mkdir()
        plan = reading(folder, path, more)
        assert main(["preview", str(plan), *MARCH[:2]]) == SOUND
        assert release(plan) == SOUND
    monkeypatch.setenv("STORE", "http://127.0.0.1:1")
    assert release(reading(tmp_path, "visits/trips.v2/{month}/", S3)) == LATER
    told = "".join(capsys.readouterr())
    assert "${STORE_SECRET}" in told and "hidden-secret" not in told


def test_room_for_private_rows_is_asked_for_before_the_charge(tmp_path, monkeypatch, capsys):
    from dpframe.engines import scans

    monkeypatch.setattr(scans, "_BUCKET_ROWS", 10)
    usage = scans.shutil.disk_usage
    monkeypatch.setattr(scans.shutil, "disk_usage", lambda place: usage(place)._replace(free=0))
    TRIPS.to_parquet(tmp_path / "trips.parquet")
    plan = reading(tmp_path, "trips.parquet")
    for command in ("preview", "release"):
        assert main([command, str(plan), *MARCH]) == LATER
        assert "too little room" in capsys.readouterr().err
    assert Ledger(tmp_path / "trips.ledger").entries == ()
