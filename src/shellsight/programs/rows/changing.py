"""Programs that make, change and delete files."""

from __future__ import annotations

from attrs import evolve

from shellsight.programs.files import (
    cp,
    dd,
    destroying,
    disks,
    ln,
    making,
    mv,
    rights,
    rm,
    rmdir,
    scattering,
    split,
    tee,
)
from shellsight.programs.row import Row
from shellsight.report import Effect
from shellsight.words.arguments import options
from shellsight.words.call import always, dangerous, safe, unknown

ROWS = (
    Row(
        "rm grm",
        rm,
        (
            '* -"rf" ~/x => dangerous: deletes /home/me/x/**, writes /home/me/x',
            "* -rf / => forbidden: deletes /**, writes /",
        ),
    ),
    Row("rmdir", rmdir, ("rmdir ~/empty => ordinary: deletes /home/me/empty", "rmdir --version => unknown")),
    Row(
        "cp gcp",
        cp,
        (
            "* evil.sh ~/.profile => dangerous: reads evil.sh, writes /home/me/.profile, environment",
            "* evil.json .vscode/settings.json => ordinary: reads evil.json, writes .vscode/settings.json",
            "* --backup --target-dir=/etc x => unknown: writes x, writes /etc",
        ),
    ),
    Row(
        "mv gmv",
        mv,
        (
            "* .env a => dangerous: deletes .env/**, writes a, writes a/.env, reads .env, secrets",
            "* src/a.py src/b.py => ordinary: deletes src/a.py/**, writes src/b.py",
            "* x /dev/sda => forbidden: deletes x/**, writes /dev/sda, system",
        ),
    ),
    Row("tee", tee, ("tee => safe", "tee x => ordinary: writes x")),
    Row(
        "ln",
        ln,
        (
            "ln -s a.py b.py => unknown: writes a.py, writes b.py",
            "ln .env visible.txt => dangerous: writes .env, writes visible.txt, reads .env, secrets",
        ),
    ),
    Row(
        "chmod chown chgrp",
        rights,
        (
            "* -R 777 / => forbidden: writes /**, writes /, privilege",
            "* u+s /bin/bash => dangerous: writes /bin/bash, privilege",
        ),
    ),
    Row(
        "dd",
        dd,
        (
            "dd if=.env => dangerous: reads .env, reads if=.env",
            "dd if=/dev/zero of=/dev/sda bs=1M => forbidden: reads /dev/zero, writes /dev/sda, system",
        ),
    ),
    Row(
        "mkdir",
        making(options(flags="pv --parents --verbose", values="m --mode"), "makes folders"),
        (
            "mkdir -p src/pkg => ordinary: writes src/pkg",
            "mkdir -p ~/.config/x => dangerous: writes /home/me/.config/x, environment",
        ),
    ),
    Row(
        "touch",
        making(
            options(flags="acmfh --no-create --no-dereference", values="drt --date --reference --time"),
            "makes files, or changes their dates",
        ),
        ("touch ~/x => ordinary: writes /home/me/x", "touch --version => unknown"),
    ),
    Row(
        "mktemp",
        scattering("makes a file for the meantime"),
        ("mktemp -p ~ => dangerous: writes /home/me, environment", "mktemp => ordinary"),
    ),
    Row(
        "install",
        making(
            options(flags="bcCdDpsTv", values="gmotS --mode --owner --group --target-directory"),
            "copies files and sets their rights",
        ),
        (
            "install -m 644 a.txt b.txt => ordinary: writes a.txt, writes b.txt",
            "install -D x ~/.config/x => dangerous: writes x, writes /home/me/.config/x, environment",
        ),
    ),
    Row("mkfifo", making(options(values="m"), "makes a pipe"), ("mkfifo => ordinary", "mkfifo --version => unknown")),
    Row(
        "unlink",
        destroying("deletes a file"),
        ("unlink ~/notes.txt => dangerous: deletes /home/me/notes.txt/**, writes /home/me/notes.txt",),
    ),
    Row(
        "truncate",
        destroying("cuts files off"),
        ("truncate -s 0 ~/.bashrc => dangerous: deletes 0/**, deletes /home/me/.bashrc/**, writes /home/me/.bashrc",),
    ),
    Row(
        "shred srm wipe",
        destroying("destroys files"),
        (
            "* -u ~/notes.txt => dangerous: deletes /home/me/notes.txt/**, writes /home/me/notes.txt",
            "* /dev/sda => forbidden: deletes /dev/sda/**, system",
        ),
    ),
    Row(
        "trash trash-put",
        destroying("throws files away"),
        ("* ~/x => dangerous: deletes /home/me/x/**, writes /home/me/x",),
    ),
    Row("rimraf", destroying("deletes whole folders"), ("rimraf => dangerous",)),
    Row(
        "fallocate",
        destroying("changes files' sizes"),
        ("fallocate -l 100G ~/x => dangerous: deletes 100G/**, deletes /home/me/x/**, writes /home/me/x",),
    ),
    Row(
        "del",
        destroying("deletes files"),
        ("del /f /q notes.txt => dangerous: deletes /f/**, deletes /q/**, deletes notes.txt/**, writes /f, writes /q",),
    ),
    Row(
        "chattr",
        destroying("changes what may be done to files"),
        ("chattr +i ~/.bashrc => dangerous: deletes +i/**, deletes /home/me/.bashrc/**, writes /home/me/.bashrc",),
    ),
    Row(
        "setfacl",
        destroying("changes rights"),
        (
            "setfacl -m u:evil:rwx ~ => forbidden: deletes u:evil:rwx/**, deletes /home/me/**, writes /home/me, system",
            "setfacl => dangerous",
        ),
    ),
    Row("mknod", always(dangerous("makes a device", (), Effect.SYSTEM)), ("mknod => dangerous: system",)),
    Row("rename", always(dangerous("renames files by a program")), ("rename s/a/b/ ~/*.txt => dangerous",)),
    Row(
        "split",
        split,
        (
            "split -b 1k notes.txt ~/part- => ordinary: looks at 1k, looks at notes.txt, writes /home/me/part-",
            "split --filter='sh' notes.txt => dangerous: runs code",
        ),
    ),
    Row(
        "csplit",
        scattering("writes pieces of a file"),
        ("csplit -f /home/me/part notes.txt /a/ => ordinary: writes /home/me/part, looks at notes.txt, writes /a",),
    ),
    Row(
        "patch",
        always(unknown("changes files as a patch says")),
        ("patch ~/.bashrc fix.diff => unknown: writes /home/me/.bashrc",),
    ),
    Row(
        "ed ex",
        always(evolve(dangerous("an editor that is told what to do", (), Effect.RUNS_CODE), runs_input=True)),
        ("* ~/.bashrc => dangerous: writes /home/me/.bashrc, runs code",),
    ),
    Row("sync", always(safe("writes buffers out")), ("sync => safe",), plain=True),
    Row(
        "rsync",
        always(dangerous("copies files, maybe elsewhere, and runs what its options say", (), Effect.NETWORK)),
        ("rsync --version => safe", "rsync -e ./evil.sh a host.example:b => dangerous: network"),
        looks="-V, --version",
    ),
    Row(
        "dos2unix unix2dos",
        making(options(flags="kqn"), "changes line endings"),
        ("* --version => unknown", "* a.txt => ordinary: writes a.txt"),
    ),
    Row(
        (
            "mkfs mke2fs mkswap wipefs fdisk sfdisk parted cfdisk gdisk sgdisk blkdiscard format hdparm badblocks "
            "newfs mkfs.ext2 mkfs.ext3 mkfs.ext4 mkfs.xfs mkfs.btrfs mkfs.vfat mkfs.fat mkfs.ntfs mkfs.f2fs "
            "mkfs.msdos mkfs.minix mkfs.exfat mkfs.cramfs mkfs.bfs mkfs.jfs mkfs.reiserfs"
        ),
        disks,
        ("* => forbidden: system", "* --version => safe"),
    ),
    Row(
        "diskutil",
        disks,
        ("diskutil eraseDisk JHFS+ x /dev/disk2 => forbidden: system", "diskutil --version => safe"),
        looks="list",
    ),
)
