package warp

// In tests, all lists of a program except the first three are compiled to machine code, because launches are short.
func init() { hotLists = 3 }
