package warp

// All but the first lists of a text are machine code in tests, where launches are short.
func init() { hotLists = 3 }
