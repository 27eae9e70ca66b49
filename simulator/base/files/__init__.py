"""Files that longspan owns: checksums, folders, locks."""
