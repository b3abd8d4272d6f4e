package control

import (
	"context"
	"errors"
	"io"
	"testing"

	"ashlar/account"
)

func TestReach(t *testing.T) {
	ctx, dir := context.Background(), shortDir(t)
	service, _ := openService(t)
	errLocked, errBroken := errors.New("locked"), errors.New("broken")
	locked := func(err error) bool { return errors.Is(err, errLocked) }
	opener := func(err error) func(context.Context) (Service, io.Closer, error) {
		return func(context.Context) (Service, io.Closer, error) {
			if err != nil {
				return Service{}, nil, err
			}
			return service, io.NopCloser(nil), nil
		}
	}
	if got, _, err := Reach(ctx, dir, opener(nil), locked); err != nil || got.Accounts != service.Accounts {
		t.Errorf("a store that is not in use: %v, %v", got, err)
	}
	if _, _, err := Reach(ctx, dir, opener(errBroken), locked); !errors.Is(err, errBroken) {
		t.Errorf("a store that does not open: %v", err)
	}

	// A server that has the store but starts to listen a moment later.
	attempts := 0
	var stop func()
	got, closer, err := Reach(ctx, dir, func(ctx context.Context) (Service, io.Closer, error) {
		if attempts++; attempts == 2 {
			stop = serve(t, dir, service)
		}
		return Service{}, nil, errLocked
	}, locked)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := got.Keys.Create(ctx, account.NewKey{Name: "through the socket"}); err != nil {
		t.Error(err)
	}
	if err := closer.Close(); err != nil {
		t.Error(err)
	}
	stop()

	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, _, err := Reach(canceled, dir, opener(errLocked), locked); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled by the caller: %v", err)
	}
}
