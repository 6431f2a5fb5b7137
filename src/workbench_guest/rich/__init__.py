"""Values that programs read beside what people see: tables as rows, charts as data. Nothing here imports a library."""
