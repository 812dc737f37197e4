"""Reports: the progress table, the closing report, tables of columns, pictures of trees."""
