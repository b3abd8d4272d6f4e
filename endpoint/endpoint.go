// Package endpoint keeps what may be secret in the URLs of nodes out of errors, and so
// out of logs: many services have a key in the path.
package endpoint

import (
	"errors"
	"net/url"
)

// WithoutURL is what an error of net/url or net/http is about, without the URL that it
// tells. Other errors it returns as they are.
func WithoutURL(err error) error {
	var about *url.Error
	if errors.As(err, &about) {
		return about.Err
	}
	return err
}
