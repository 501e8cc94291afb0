"""What a laboratory needs around the optimizer: spreadsheets, space files, plates, reports."""
