// The Spark operator of Kubeflow as a process of the tests: `sparkoperator controller start FLAGS`.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/kubeflow/spark-operator/v2/cmd/operator/controller"
	"github.com/kubeflow/spark-operator/v2/cmd/operator/webhook"
	"github.com/spf13/cobra"
)

func main() {
	if os.Getenv("KUBEBOX_ENDS_WITH_STDIN") != "" {
		go endWithStdin()
	}
	command := &cobra.Command{Use: "sparkoperator"}
	command.AddCommand(controller.NewCommand(), webhook.NewCommand())
	if err := command.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// It dies with the process that holds the other end of its input, however that one ends.
func endWithStdin() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}
