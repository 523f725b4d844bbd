"""All files of a folder are checked at once: certificates are read with their tables."""

import pandas as pd
from support.planning import planned
from support.terminal import ALTERED, SOUND, UNREADABLE, main


def test_certificates_are_read_with_their_files(tmp_path, capsys):
    (tmp_path / "out").mkdir()
    plan = planned(tmp_path, ('"{query}-{month}.csv"', '"out/{query}-{month}.csv"'))
    assert main(["release", str(plan), "--set", "month=2024-03", "--quiet"]) == SOUND
    files = sorted(map(str, (tmp_path / "out").iterdir()))
    assert len(files) == 4
    assert main(["verify", *files]) == SOUND
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert main(["verify", files[1]]) == UNREADABLE
    assert f"give {files[0]}: its certificate is read with it" in capsys.readouterr().err
    with open(files[1], "a") as certificate:
        certificate.write("}")
    assert main(["verify", *files]) in (ALTERED, UNREADABLE)


def test_an_altered_table_in_csv_has_no_page_and_one_in_parquet_has_one(tmp_path, capsys):
    plan = planned(tmp_path, ('"{query}-{month}.csv"', '["{query}.csv", "{query}.parquet"]'))
    assert main(["release", str(plan), "--set", "month=2024-03", "--quiet"]) == SOUND
    page = tmp_path / "page.html"
    table = tmp_path / "fares.csv"
    table.write_text(table.read_text() + "extra\n")
    assert main(["report", str(table), "--output", str(page)]) == ALTERED
    assert not page.exists()
    place = tmp_path / "fares.parquet"
    released = pd.read_parquet(place)
    kept = released.attrs
    changed = released * 2
    changed.attrs = kept
    changed.to_parquet(place)
    assert main(["report", str(place), "--output", str(page), "--quiet"]) == ALTERED
    assert "Not to be published as it is" in page.read_text(encoding="utf-8")
