"""Programs that pack and unpack."""

from __future__ import annotations

from shellsight.programs.archives import listed, packed, printed, tar, unzip
from shellsight.programs.row import Row
from shellsight.words.call import always, dangerous
from shellsight.words.form import Operands, form

ROWS = (
    Row(
        "tar",
        tar,
        (
            "tar -tf ~/backup.tar => safe: reads /home/me/backup.tar",
            "tar xzf vendor.tgz => ordinary: writes ./**, writes vendor.tgz, looks at xzf",
            "tar --rem -cf ~/x.tar src => unknown: writes /home/me/x.tar, writes src",
            "tar xf a.tar --to-command=./evil.sh => dangerous: runs code",
        ),
        looks="--version",
        plain=True,
    ),
    Row(
        "gtar bsdtar",
        tar,
        (
            "* -xf a.tar -C / => dangerous: writes /**, writes a.tar, writes /, system",
            "* --version => unknown",
            "* a.txt => ordinary: writes ./**, looks at a.txt",
        ),
        plain=True,
    ),
    Row(
        "unzip",
        printed(unzip),
        (
            "unzip -l dist/app.whl => safe: reads dist/app.whl",
            "unzip assets.zip => ordinary: reads assets.zip, writes ./**",
            "unzip -o a.zip -d / => dangerous: reads a.zip, writes /**, writes /",
        ),
        plain=True,
    ),
    Row(
        (
            "gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd lz4 lzma compress uncompress zcat gzcat bzcat xzcat "
            "zstdcat lz4cat"
        ),
        packed,
        ("* --version => unknown", "* => safe"),
        plain=True,
    ),
    Row(
        "zipinfo",
        form(flags="1lmsvhtz"),
        ("zipinfo -1 dist/app.whl => safe: reads dist/app.whl", "zipinfo --version => unknown"),
        plain=True,
    ),
    Row(
        "zip",
        always(dangerous("packs or unpacks, deletes or runs what its options say")),
        ("zip -rm ~/x.zip src => dangerous: writes /home/me/x.zip", "zip --version => safe"),
        looks="-v, -h, --version",
    ),
    Row(
        "7z 7za",
        listed("l t", "-ba -slt", always(dangerous("packs or unpacks, deletes or runs what its options say"))),
        ("* l @list => dangerous", "* l -slt a.7z => safe: reads a.7z"),
        looks="--version",
        plain=True,
    ),
    Row(
        "rar cpio pax ar-x shar",
        always(dangerous("packs or unpacks, deletes or runs what its options say")),
        ("* --version => dangerous",),
    ),
    Row(
        "unrar",
        listed("l lb v vb t", "", always(dangerous("packs or unpacks, deletes or runs what its options say"))),
        ("unrar l a.rar => safe: reads a.rar", "unrar x a.rar => dangerous"),
    ),
    Row(
        "zgrep zegrep zfgrep",
        form(flags="ivnlcEFwoqhH", values="eABCm", operands=Operands.SEARCH),
        ("* --version => unknown", "* a.txt => safe"),
        plain=True,
    ),
)
