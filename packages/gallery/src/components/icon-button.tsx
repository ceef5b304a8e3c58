import type { JSX } from 'preact'
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
