package main

import (
	"encoding/json"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"ashlar/app"

	"github.com/spf13/cobra"
)

func serveCommand() *cobra.Command {
	var data, listen, file string
	c := &cobra.Command{
		Use:   "serve --data DIR [--listen ADDRESS] [--config ashlar.yaml]",
		Short: "Answer JSON-RPC questions about the networks of a data directory",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config := app.DefaultConfig()
			if file != "" {
				var err error
				if config, err = app.LoadConfig(file); err != nil {
					return err
				}
			}
			if data != "" {
				config.Data = data
			}
			if listen != "" {
				config.Listen = listen
			}
			if err := need(c, "data", config.Data); err != nil {
				return err
			}
			return app.Serve(c.Context(), config)
		},
	}
	c.Flags().StringVar(&data, "data", "", "data directory; over what the configuration says")
	c.Flags().StringVar(&listen, "listen", "", "address to listen on (default "+app.DefaultConfig().Listen+")")
	c.Flags().StringVar(&file, "config", "", "configuration file; see docs/configuration.md")
	return c
}

func statusCommand() *cobra.Command {
	var data string
	var asJSON bool
	c := &cobra.Command{
		Use:   "status --data DIR [--json]",
		Short: "Say what a data directory holds; works beside a running server too",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := need(c, "data", data); err != nil {
				return err
			}
			status, err := app.ReadStatus(c.Context(), data)
			if err != nil {
				return err
			}
			if asJSON {
				encoder := json.NewEncoder(os.Stdout)
				encoder.SetIndent("", "  ")
				return encoder.Encode(status)
			}
			table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "NETWORK\tFAMILY\tCHAIN ID\tHEAD\tOF\tDISK")
			for _, n := range status.Networks {
				fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\t%.1f MiB\n", n.Name, n.Family, n.ChainID, n.Head,
					time.Unix(int64(n.HeadTime), 0).UTC().Format(time.DateTime), float64(n.DiskBytes)/(1<<20))
			}
			return table.Flush()
		},
	}
	c.Flags().StringVar(&data, "data", "", "data directory")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
