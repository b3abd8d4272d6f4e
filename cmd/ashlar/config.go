package main

import (
	"fmt"
	"os"

	"ashlar/app"
	"ashlar/app/config"

	"github.com/spf13/cobra"
)

func configCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Check a configuration, or print an example of one",
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
	c.AddCommand(&cobra.Command{
		Use:   "example",
		Short: "Print a configuration with every entry, its default and its meaning",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return config.WriteExample(os.Stdout, app.Families()) },
	}, &cobra.Command{
		Use:   "schema",
		Short: "Print a JSON Schema of the configuration, for editors",
		Long: `Prints a JSON Schema of ashlar.yaml. An editor with the YAML language server uses it if
the file begins with the line

  # yaml-language-server: $schema=ashlar.schema.json`,
		Example: "  ashlar config schema > ashlar.schema.json",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return config.WriteSchema(os.Stdout, app.Families()) },
	})
	return c
}
