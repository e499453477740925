module controlplane/node

go 1.26.0
