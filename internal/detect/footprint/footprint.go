// Package footprint counts the memory that values hold: what a detector whose metadata is many structures reports as its
// metadata, without each of them keeping accounts.
package footprint

import "reflect"

// Bytes is the memory reachable from the values that roots point to, in bytes, the values themselves included. What several
// pointers or slices lead to from the same address on is counted once; slices count with their capacity, maps by
// the entries they hold. What functions and channels refer to is not counted. Nothing is allocated by type or by chance, so
// that equal structures have equal footprints. It takes time in proportion to what holds pointers.
func Bytes(roots ...any) uint64 {
	c := counter{seen: map[seen]bool{}, flat: map[reflect.Type]bool{}}
	for _, r := range roots {
		c.refers(reflect.ValueOf(r))
	}
	return c.bytes
}

// seen is memory of a type at an address: a struct and its first field begin at one.
type seen struct {
	at uintptr
	t  reflect.Type
}

type counter struct {
	bytes uint64
	seen  map[seen]bool
	flat  map[reflect.Type]bool // whether values of the type refer to nothing
}

// refers counts what v, which is counted itself, leads to.
func (c *counter) refers(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && c.first(v.Pointer(), v.Type()) {
			c.bytes += uint64(v.Type().Elem().Size())
			c.refers(v.Elem())
		}
	case reflect.Interface:
		if !v.IsNil() {
			c.refers(v.Elem())
		}
	case reflect.String:
		c.bytes += uint64(v.Len())
	case reflect.Slice:
		if v.Cap() == 0 || !c.first(v.Pointer(), v.Type()) {
			return
		}
		c.bytes += uint64(v.Cap()) * uint64(v.Type().Elem().Size())
		c.elements(v)
	case reflect.Array:
		c.elements(v)
	case reflect.Map:
		if v.IsNil() || !c.first(v.Pointer(), v.Type()) {
			return
		}
		c.bytes += uint64(v.Len()) * uint64(v.Type().Key().Size()+v.Type().Elem().Size())
		if c.isFlat(v.Type().Key()) && c.isFlat(v.Type().Elem()) {
			return
		}
		for i := v.MapRange(); i.Next(); {
			c.refers(i.Key())
			c.refers(i.Value())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); !c.isFlat(f.Type()) {
				c.refers(f)
			}
		}
	}
}

func (c *counter) elements(v reflect.Value) {
	if c.isFlat(v.Type().Elem()) {
		return
	}
	for i := range v.Len() {
		c.refers(v.Index(i))
	}
}

func (c *counter) first(at uintptr, t reflect.Type) bool {
	k := seen{at, t}
	if c.seen[k] {
		return false
	}
	c.seen[k] = true
	return true
}

// isFlat tells whether values of a type refer to no other memory.
func (c *counter) isFlat(t reflect.Type) bool {
	flat, known := c.flat[t]
	if known {
		return flat
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.String, reflect.Slice, reflect.Map:
		flat = false
	case reflect.Array:
		flat = c.isFlat(t.Elem())
	case reflect.Struct:
		flat = true
		for i := range t.NumField() {
			flat = flat && c.isFlat(t.Field(i).Type)
		}
	default: // numbers, and functions and channels, which are not followed
		flat = true
	}
	c.flat[t] = flat
	return flat
}
