import type { ComponentChildren } from 'preact'

/** A property of a file, in a list of properties. */
export function Entry({ term, children }: { term: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{term}</dt>
      <dd>{children}</dd>
    </div>
  )
}
