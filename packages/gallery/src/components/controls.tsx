import type { ComponentChildren, JSX } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { Icon, type IconName } from './icon.tsx'

interface IconButtonProps {
  readonly icon: IconName
  readonly label: string
  readonly onClick: () => void
  readonly disabled?: boolean
  readonly pressed?: boolean
  readonly class?: string
}

/** A button with an icon only. The label is its accessible name and its tooltip. */
export function IconButton({
  icon,
  label,
  onClick,
  disabled,
  pressed,
  class: extra = '',
}: IconButtonProps): JSX.Element {
  return (
    <button
      type="button"
      class={`icon-button ${extra}`}
      aria-label={label}
      title={label}
      aria-pressed={pressed}
      disabled={disabled}
      onClick={onClick}
    >
      <Icon name={icon} />
    </button>
  )
}

interface FileButtonProps {
  readonly class: string
  readonly folder?: boolean
  /** The types that the picker offers. */
  readonly accept?: string
  /** Opens the camera of a phone. */
  readonly camera?: boolean
  readonly label?: string
  readonly onChoose: (files: File[]) => void
  readonly children: ComponentChildren
}

/** A button that opens the browser's file picker, for files or for a folder. */
export function FileButton(props: FileButtonProps) {
  const { class: name, folder = false, accept, camera = false, label, onChoose, children } = props
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
        accept={accept}
        {...(camera ? { capture: 'environment' } : {})}
        data-choice={folder ? 'folder' : camera ? 'camera' : 'files'}
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

interface ChoiceProps<T extends string> {
  readonly label: string
  /** The texts of the options, by value. */
  readonly options: Readonly<Record<T, string>>
  readonly value: T
  readonly onChoose: (value: T) => void
  /** Whether the label is for screen readers only. */
  readonly quiet?: boolean
}

/** A list of options of which one is chosen. */
export function Choice<T extends string>({ label, options, value, onChoose, quiet = false }: ChoiceProps<T>) {
  const isOption = (text: string): text is T => Object.hasOwn(options, text)
  return (
    <label class="choice">
      <span class={quiet ? 'off-screen' : undefined}>{label}</span>
      <span class="select">
        <select
          value={value}
          onChange={({ currentTarget }) => isOption(currentTarget.value) && onChoose(currentTarget.value)}
        >
          {Object.entries<string>(options).map(([option, text]) => (
            <option key={option} value={option} selected={option === value}>
              {text}
            </option>
          ))}
        </select>
      </span>
    </label>
  )
}
