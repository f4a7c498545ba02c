"""What every room uses: numbers, threads, tables, files, storage, registries and the words of messages."""
