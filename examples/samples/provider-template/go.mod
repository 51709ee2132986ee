module example.com/machine-controller-acme

go 1.26.0

require (
	github.com/machinist-dev/machinist v0.1.0
	github.com/machinist-dev/machinist/examples v0.1.0
	github.com/spf13/pflag v1.0.10
	github.com/stretchr/testify v1.12.1
	k8s.io/api v0.37.2
	k8s.io/apimachinery v0.37.2
	sigs.k8s.io/yaml v1.6.0
)

// All modules of k8s.io have one version, those that the examples import too.
require k8s.io/client-go v0.37.2 // indirect
