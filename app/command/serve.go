package command

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"ashlar/app"
	"ashlar/app/config"
)

// LoadConfig reads ashlar.yaml over the defaults.
func LoadConfig(path string) (config.Config, error) { return config.Load(path, app.Families()) }

// Serve serves every network of the data directory, or those that the configuration names,
// until ctx is done. Each receive from again reloads the configuration; an invalid one is
// logged and ignored.
func Serve(ctx context.Context, load func() (config.Config, error), again <-chan os.Signal) error {
	c, err := load()
	if err != nil {
		return err
	}
	defer tuneCollector()()
	s, err := app.Open(ctx, c, nil)
	if err != nil {
		return err
	}
	warnOfServed(s, c)
	s.Load = load
	err = s.Run(ctx, func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-again:
			}
			c, err := load()
			if err == nil {
				err = s.Reload(c)
			}
			if err != nil {
				slog.Error("cannot reload the configuration", "error", err)
			}
		}
	})
	return errors.Join(err, s.Close())
}
