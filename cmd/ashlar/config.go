package main

import (
	"fmt"

	"ashlar/app"

	"github.com/spf13/cobra"
)

func configCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Check a configuration",
	}
	c.AddCommand(&cobra.Command{
		Use:   "check FILE",
		Short: "Check a configuration file without starting a server",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := app.CheckConfig(args[0]); err != nil {
				return err
			}
			fmt.Println("the configuration is valid")
			return nil
		},
	})
	return c
}
