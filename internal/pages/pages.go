// Package pages reserves address space whose pages cost memory only once they are touched, and gives pages back.
package pages

// Size is what the bounds of a Drop should be multiples of, in bytes. Where pages are larger it may fail.
const Size = 4096
