module twheel

go 1.19
