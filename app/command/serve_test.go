package command

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"

	"ashlar/app"
	"ashlar/app/config"
)

// SIGHUP is what makes Serve load its configuration again; a wrong one changes nothing.
func TestServeLoadsAgain(t *testing.T) {
	data := t.TempDir()
	demoOf(t, app.Families().Default(), data, "demo", 0)
	loads := make(chan int)
	n := 0
	load := func() (config.Config, error) {
		n++
		loads <- n
		c := config.Default()
		c.Data, c.Listen = data, "127.0.0.1:0"
		if n == 2 {
			return c, errors.New("a wrong entry")
		}
		return c, nil
	}
	ctx, stop := context.WithCancel(t.Context())
	again, ended := make(chan os.Signal), make(chan error, 1)
	go func() { ended <- Serve(ctx, load, again) }()
	<-loads
	for want := 2; want <= 3; want++ {
		again <- syscall.SIGHUP
		if got := <-loads; got != want {
			t.Errorf("load %d, expected %d", got, want)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
