package main

import (
	"cmp"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"ashlar/app/command"
	"ashlar/app/config"

	"github.com/spf13/cobra"
)

func serveCommand() *cobra.Command {
	var data, listen, file string
	c := &cobra.Command{
		Use:   "serve --data DIR [--listen ADDRESS] [--config ashlar.yaml]",
		Short: "Serve the networks of a data directory over JSON-RPC",
		Long: `Serves until SIGINT or SIGTERM, and then finishes the requests in progress. SIGHUP reloads
the configuration: hosts, limits and rules apply at once, other entries after a restart.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkListen(c, "listen", listen); err != nil {
				return err
			}
			load := func() (config.Config, error) {
				loaded := config.Default()
				if file != "" {
					var err error
					if loaded, err = command.LoadConfig(file); err != nil {
						return loaded, err
					}
				}
				loaded.Data, loaded.Listen = cmp.Or(data, loaded.Data), cmp.Or(listen, loaded.Listen)
				if loaded.Store.Cassandra.Used() || loaded.Data != "" {
					return loaded, nil
				}
				return loaded, fmt.Errorf("%w: no data directory is given: type %s --data DIR with the directory of `ashlar import`, or try `ashlar demo`; see %s --help",
					errUsage, c.CommandPath(), c.CommandPath())
			}
			signal.Reset(syscall.SIGHUP) // otherwise SIGHUP stops the command, see stopSignals
			again := make(chan os.Signal, 1)
			signal.Notify(again, syscall.SIGHUP)
			defer signal.Stop(again)
			return command.Serve(c.Context(), load, again)
		},
	}
	c.Flags().StringVar(&data, "data", "", "data directory; overrides the configuration")
	c.Flags().StringVar(&listen, "listen", "", "address to listen on (default "+config.Default().Listen+")")
	c.Flags().StringVar(&file, "config", "", "configuration file; see docs/configuration.md")
	return c
}
