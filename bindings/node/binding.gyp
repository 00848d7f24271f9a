# SPDX-License-Identifier: MIT
{
  "targets": [
    {
      "target_name": "twheel",
      "sources": ["src/addon.c"],
      "cflags": ["<!@(pkg-config --cflags libtwheel)", "-Wall", "-Wextra"],
      "libraries": ["<!@(pkg-config --libs libtwheel)"]
    }
  ]
}
