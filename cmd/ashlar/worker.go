package main

import (
	"os"

	"ashlar/app"

	"github.com/spf13/cobra"
)

// workerCommand is for the service itself, which starts its workers with it.
func workerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    app.WorkerCommand,
		Short:  "Do work for a service, which starts this command by itself",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(*cobra.Command, []string) error { return app.Work(os.Stdin, os.Stdout) },
	}
}
