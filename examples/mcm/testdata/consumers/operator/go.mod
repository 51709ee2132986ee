module example.com/operator

go 1.25.0

require (
	github.com/gardener/machine-controller-manager v0.62.0
	github.com/stretchr/testify v1.10.0
	k8s.io/api v0.32.1
	k8s.io/apimachinery v0.32.1
	k8s.io/client-go v0.32.1
	sigs.k8s.io/controller-runtime v0.20.2
)

replace github.com/gardener/machine-controller-manager => github.com/machinist-dev/machinist/examples/mcm v0.1.0
