// Package pages reserves address space whose pages take memory only after the first access, and returns pages to the
// system.
package pages

// Size is the unit of the bounds of a Drop, in bytes. On systems with larger pages Drop may fail.
const Size = 4096
