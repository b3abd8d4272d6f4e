package cassandra

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ashlar/kv"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
)

// errRefused is what connecting returns if the nodes do not accept the password.
var errRefused = errors.New("refused")

// errNoTable is what a statement for a row table returns that does not exist yet.
var errNoTable = errors.New("no such table")

const (
	readPatience  = 10 * time.Second // for which a read is tried again, if its context allows
	firstBackoff  = 20 * time.Millisecond
	maxBackoff    = time.Second
	warnUnwritten = 10 * time.Second // between two warnings of a write that cannot be made
)

// isTransient reports whether a statement that failed with err may succeed at another node
// or later.
func isTransient(err error) bool {
	var (
		syntax       *gocql.RequestErrSyntax
		invalid      *gocql.RequestErrInvalid
		unauthorized *gocql.RequestErrUnauthorized
		credentials  *gocql.RequestErrCredentials
		config       *gocql.RequestErrConfig
		exists       *gocql.RequestErrAlreadyExists
	)
	switch {
	case err == nil, errors.Is(err, kv.ErrFailed), errors.Is(err, kv.ErrClosed), errors.Is(err, kv.ErrConflict), errors.Is(err, errSwapped),
		errors.Is(err, errRefused), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, gocql.ErrNotFound), errors.Is(err, gocql.ErrSessionClosed),
		errors.As(err, &syntax), errors.As(err, &invalid), errors.As(err, &unauthorized),
		errors.As(err, &credentials), errors.As(err, &config), errors.As(err, &exists):
		return false
	}
	var plain gocql.RequestError
	if errors.As(err, &plain) { // some arrive without a type of their own
		code := plain.Code()
		return code < gocql.ErrCodeSyntax && code != gocql.ErrCodeCredentials && code != gocql.ErrCodeProtocol
	}
	return true
}

// isNoTable reports whether a node does not know the table of a statement.
func isNoTable(err error) bool {
	var request gocql.RequestError
	return errors.As(err, &request) && request.Code() == gocql.ErrCodeInvalid &&
		(strings.Contains(request.Message(), "does not exist") || strings.Contains(request.Message(), "unconfigured table"))
}

// translate names the kinds of errors that callers distinguish.
func translate(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, kv.ErrUnavailable) {
		return err // translated before, if ErrUnavailable
	}
	if errors.Is(err, gocql.ErrSessionClosed) {
		return kv.ErrClosed
	}
	var request gocql.RequestError
	if errors.As(err, &request) {
		switch {
		case isNoTable(err):
			return fmt.Errorf("%w: %w", errNoTable, err)
		case request.Code() == gocql.ErrCodeUnauthorized:
			return fmt.Errorf("permission denied: %w", err)
		}
	}
	if isTransient(err) {
		return fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
	}
	return err
}

// retry calls attempt until it succeeds, fails for good, ctx is done, or patience has
// passed. A negative patience does not end. The error is translated.
func (c *Cluster) retry(ctx context.Context, patience time.Duration, attempt func(context.Context) error) error {
	began := time.Now()
	warned := began
	backoff := firstBackoff
	for {
		err := attempt(ctx)
		if canceled := ctx.Err(); err != nil && canceled != nil {
			switch late := errors.Is(canceled, context.DeadlineExceeded); {
			case late && isTransient(err):
				return fmt.Errorf("%w: %w", translate(err), canceled)
			case late && errors.Is(err, kv.ErrUnavailable): // of a retry or a turn within attempt, with the deadline
				return err
			}
			return canceled
		}
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			// This is a context of the driver's: the connection was closed while the statement was prepared, or was not
			// opened in time.
			err = fmt.Errorf("the driver's context or connection ended: %v", err)
		}
		if !isTransient(err) {
			return translate(err)
		}
		if patience >= 0 && time.Since(began)+backoff > patience {
			return translate(err)
		}
		if time.Since(warned) > warnUnwritten {
			warned = time.Now()
			c.log.Warn("cassandra does not answer; trying again", "waited", time.Since(began).Round(time.Second), "error", err)
		}
		timer := time.NewTimer(backoff)
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w: %w", translate(err), ctx.Err())
		case <-timer.C:
		}
		backoff = min(2*backoff, maxBackoff)
	}
}
