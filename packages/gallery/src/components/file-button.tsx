import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'

interface FileButtonProps {
  readonly class: string
  readonly folder?: boolean
  readonly label?: string
  readonly onChoose: (files: File[]) => void
  readonly children: ComponentChildren
}

/** A button that opens the browser's file picker, for files or for a folder. */
export function FileButton({ class: name, folder = false, label, onChoose, children }: FileButtonProps) {
  const input = useRef<HTMLInputElement>(null)
  useLayoutEffect(() => {
    if (input.current) input.current.webkitdirectory = folder
  }, [folder])
  return (
    <>
      <button
        type="button"
        class={name}
        aria-label={label}
        title={label}
        onClick={() => input.current?.click()}
      >
        {children}
      </button>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        data-choice={folder ? 'folder' : 'files'}
        onChange={(event) => {
          const { files } = event.currentTarget
          onChoose([...(files ?? [])])
          // Otherwise choosing the same file again fires no event.
          event.currentTarget.value = ''
        }}
      />
    </>
  )
}
