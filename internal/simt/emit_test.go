package simt
