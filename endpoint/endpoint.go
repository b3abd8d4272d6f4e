// Package endpoint keeps upstream URLs out of errors and logs: many providers put an API
// key in the path.
package endpoint

import (
	"errors"
	"net/url"
)

// WithoutURL removes the URL from an error of net/url or net/http. It returns other errors
// unchanged.
func WithoutURL(err error) error {
	var about *url.Error
	if errors.As(err, &about) {
		return about.Err
	}
	return err
}
