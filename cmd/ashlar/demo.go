package main

import (
	"fmt"
	"os"
	"time"

	"ashlar/app/command"
	"ashlar/app/config"

	"github.com/spf13/cobra"
)

func demoCommand() *cobra.Command {
	d := command.Demo{}
	c := &cobra.Command{
		Use:   "demo",
		Short: "Serve a demo network, with an API key and examples to paste",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if d.Interval <= 0 {
				return fmt.Errorf("%w: --interval %v: expected more than 0s; see %s --help", errUsage, d.Interval, c.CommandPath())
			}
			if err := checkListen(c, "listen", d.Listen); err != nil {
				return err
			}
			if err := checkListen(c, "operator", d.Operator); err != nil {
				return err
			}
			return d.Run(c.Context(), os.Stdout)
		},
	}
	c.Flags().StringVar(&d.Data, "data", "", "directory to keep the demo in (default a temporary one)")
	c.Flags().StringVar(&d.Listen, "listen", config.Default().Listen, "address to listen on")
	c.Flags().StringVar(&d.Operator, "operator", "", "address for metrics and profiles (default none)")
	c.Flags().Uint64Var(&d.Blocks, "blocks", 300, "blocks to create before serving")
	c.Flags().DurationVar(&d.Interval, "interval", 2*time.Second, "time between new blocks")
	return c
}
