// Package verify explores every execution of a small concurrent program under scoped RC11 and reports its errors.
package verify
