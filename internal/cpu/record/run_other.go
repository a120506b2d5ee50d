//go:build !linux

package record

import (
	"context"
	"errors"
)

var errSystem = errors.New("programs are recorded on Linux only; traces can be judged here: fencepost analyze")

// Supported returns an error, because only Linux is supported.
func Supported() error { return errSystem }

// Run returns the error of Supported.
func Run(context.Context, Options) (Result, error) { return Result{}, errSystem }
