# Sourced by the scenarios in shell. A failed expectation ends the script.

# is FOUND EXPECTED
is() {
  [ "$1" = "$2" ] || {
    printf 'found:\n%s\nexpected:\n%s\n' "$1" "$2" >&2
    exit 1
  }
}

# has TEXT PART
has() {
  case $1 in
    *"$2"*) ;;
    *)
      printf 'found:\n%s\nwithout: %s\n' "$1" "$2" >&2
      exit 1
      ;;
  esac
}

# refuses TEXT COMMAND…: the command fails and prints the text.
refuses() {
  text=$1
  shift
  if output=$("$@" 2>&1); then
    echo "$* succeeded: $output" >&2
    exit 1
  fi
  has "$output" "$text"
}
