//go:build man

package main

import (
	"fmt"
	"os"
	"time"

	"ashlar/app"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func init() { forPackages = append(forPackages, manCommand) }

// manCommand writes the manual pages for packages. What renders them is a megabyte that a
// server has no use for, so only a build with the tag man has the command.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write a manual page for each command",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			// Without a date the pages of two builds would differ.
			epoch := time.Unix(0, 0).UTC()
			c.Root().DisableAutoGenTag = true
			if err := doc.GenManTree(c.Root(), &doc.GenManHeader{Section: "1", Source: app.ClientVersion(), Manual: "Ashlar", Date: &epoch}, args[0]); err != nil {
				return fmt.Errorf("write manual pages: %w", err)
			}
			return nil
		},
	}
}
