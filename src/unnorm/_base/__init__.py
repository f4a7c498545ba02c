"""What every room stands on: numbers, threads, tables, files and storage."""
