"""This machine's own files, folders, programs and clock: the only room with POSIX calls beside the wire's."""
