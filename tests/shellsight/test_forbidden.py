"""What never runs, whatever anybody allowed, in its many spellings."""

from __future__ import annotations

import pytest

from shellsight.report import Standing
from tests.shellsight.shell_lines import standing

VITAL = [
    *(
        "/",
        "//",
        "/.",
        "/./",
        "/..",
        "~",
        "~/",
        "$HOME",
        '"$HOME"',
        '"$HOME"/',
        "${HOME}",
        "${HOME}/.",
        ".",
        "./",
        "..",
        "../",
        "../..",
    ),
    *(
        "/*",
        "~/*",
        '"$HOME"/*',
        "/etc",
        "/usr",
        "/home",
        "/home/me",
        "/home/me/../me/",
        "$PWD",
        '"$(pwd)"',
        "/repo",
        "-- /",
        "build /",
    ),
    *("/???", "/home/*", "~/.*", "/usr/*"),
]


@pytest.mark.parametrize("target", VITAL)
@pytest.mark.parametrize(
    "command", ["rm -rf", "rm -fr", "rm -r", "rm --recursive --force", "rm -v -R", "sudo rm -rf", "\\rm -rf"]
)
def test_deleting_what_must_stay(command: str, target: str) -> None:
    assert standing(f"{command} {target}") is Standing.FORBIDDEN


@pytest.mark.parametrize("folder", ["/", "~", "/etc", "/home", '"$HOME"'])
def test_deleting_everything_once_there(folder: str) -> None:
    assert standing(f"cd {folder} && rm -rf *") is Standing.FORBIDDEN
    assert standing(f"cd {folder}; rm -rf ./*") is Standing.FORBIDDEN


@pytest.mark.parametrize(
    "line",
    [
        "rm -rf --no-preserve-root /x",
        "mkfs.ext4 /dev/sda1",
        "wipefs -a /dev/sda",
        "dd if=x of=/dev/sda",
        "echo x > /dev/sda",
        "cat x >> /dev/nvme0n1",
        "cp x /dev/sdb",
        "tee /dev/sdc < x",
        "shred /dev/sda",
        "mv x /dev/sda",
        ":(){ :|:& };:",
        "b() { b | b & }; b",
        "chmod -R 777 /",
        "chmod -R 000 ~",
        "chown -R me /etc",
        "chmod --recursive 777 $HOME",
        "mv ~ /x",
        "mv / x",
        "find / -delete",
        "find ~ -delete",
        "x=/; rm -rf $x",
        "for d in / x; do rm -rf $d; done",
        "if true; then rm -rf ~; fi",
        "f() { rm -rf /; }; f",
        "trap 'rm -rf /' EXIT",
        "echo 'rm -rf /' | sh",
        "sh <<< 'rm -rf /'",
    ],
)
def test_other_ends_of_the_world(line: str) -> None:
    assert standing(line) is Standing.FORBIDDEN


@pytest.mark.parametrize(
    "target",
    ["build", "./build", "/repo/build", "~/x/y", "/tmp/x", "*", "./*", "*.pyc", "$X", '"$X"/*', "build/../dist"],
)
def test_other_deletions_ask(target: str) -> None:
    assert standing(f"rm -rf {target}") is Standing.DANGEROUS


@pytest.mark.parametrize(
    "line",
    ["rm a", "chmod -R 755 .", "dd if=a of=b", "find . -delete", "find / -name x -delete", "rm -f a"],
)
def test_what_is_only_dangerous_is_not_forbidden(line: str) -> None:
    assert standing(line) is not Standing.FORBIDDEN
    assert standing(line) >= Standing.DANGEROUS


def test_devices_that_are_no_disks_are_only_dangerous() -> None:
    assert standing("echo x > /dev/ttyUSB0") is Standing.DANGEROUS
    assert standing("echo x > /dev/shm/a") is Standing.ORDINARY
    assert standing("ls > /dev/null") is Standing.SAFE
