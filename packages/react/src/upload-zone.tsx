import type { NamedFile } from '@mediabucket/client'
import { namedFiles, watchUploadZone } from '@mediabucket/client/dom'
import { type ComponentPropsWithoutRef, type ReactNode, useEffect, useRef, useState } from 'react'

/** What a function as the child of an `UploadZone` receives. */
interface UploadZoneContent {
  /** Whether files are dragged over the zone. */
  readonly isOver: boolean
  /** Opens the dialog in which files are chosen. */
  readonly choose: () => void
}

export interface UploadZoneProps extends Omit<ComponentPropsWithoutRef<'div'>, 'children' | 'role'> {
  /** Files that were chosen, dropped or pasted: pass `add` of `useUpload`. */
  readonly onFiles: (files: readonly NamedFile[]) => void
  /** Files that were dropped or pasted although `accept` or `multiple` excludes them. */
  readonly onRefused?: ((files: readonly NamedFile[]) => void) | undefined
  /** The accessible name of the zone, and the text of its button. */
  readonly label: string
  /** As the attribute of `<input type="file">`: `image/*,.pdf`. */
  readonly accept?: string | undefined
  /** Default: true. */
  readonly multiple?: boolean | undefined
  /** Whether files may be dropped and pasted anywhere on the page. Default: false, only here. */
  readonly wholePage?: boolean | undefined
  readonly disabled?: boolean | undefined
  /** The content of the button; or a function that returns the content of the zone, with a button of its own. */
  readonly children?: ReactNode | ((content: UploadZoneContent) => ReactNode)
}

/**
 * A zone without styles: files are chosen with its button, dropped on it, or pasted while the focus is in it. While files are dragged over it,
 * it has the attribute `data-over`.
 */
export function UploadZone({
  onFiles,
  onRefused,
  label,
  accept,
  multiple = true,
  wholePage = false,
  disabled = false,
  children,
  ...attributes
}: UploadZoneProps): ReactNode {
  const zone = useRef<HTMLDivElement>(null)
  const input = useRef<HTMLInputElement>(null)
  const [isOver, setOver] = useState(false)
  const handlers = useRef({ onFiles, onRefused })
  useEffect(() => {
    handlers.current = { onFiles, onRefused }
  })
  useEffect(() => {
    if (zone.current === null || disabled) return
    const options = { accept, multiple, wholePage }
    return watchUploadZone(zone.current, options, {
      onFiles: (files) => handlers.current.onFiles(files),
      onRefused: (files) => handlers.current.onRefused?.(files),
      onOver: setOver,
    })
  }, [accept, multiple, wholePage, disabled])

  const choose = () => input.current?.click()
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset has styles of its own
    <div {...attributes} ref={zone} role="group" aria-label={label} data-over={isOver ? '' : undefined}>
      <input
        ref={input}
        type="file"
        hidden
        accept={accept}
        multiple={multiple}
        disabled={disabled}
        onChange={({ currentTarget }) => {
          onFiles(namedFiles(currentTarget))
          // The same file may be chosen again.
          currentTarget.value = ''
        }}
      />
      {typeof children === 'function' ? (
        children({ isOver, choose })
      ) : (
        <button type="button" disabled={disabled} onClick={choose}>
          {children ?? label}
        </button>
      )}
    </div>
  )
}
