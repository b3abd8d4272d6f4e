package family

// UsageError means that an argument of a command is wrong whatever is stored.
type UsageError struct{ Err error }

// Error implements error.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong with the argument.
func (e *UsageError) Unwrap() error { return e.Err }

// Usage returns an error as that of a command's argument; nil for nil.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return &UsageError{err}
}
