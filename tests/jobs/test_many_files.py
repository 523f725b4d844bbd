"""All files of a folder are checked at once: certificates are read with their tables."""

from support.planning import planned

from dpframe.jobs.commands import main
from dpframe.jobs.terminal import ALTERED, SOUND, UNREADABLE


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
