import { Icon } from '../components/icon.tsx'
import { useGallery } from '../gallery-context.ts'
import { strings } from '../strings.ts'
import { NamesChoice } from './names-choice.tsx'

interface CopyLinksProps {
  readonly label: string
  /** Whether the button shows its label. */
  readonly labelled?: boolean
  readonly ids: () => readonly string[]
  /** Whether the items are in a private bucket. */
  readonly isPrivate: boolean
  /** The id of the menu. */
  readonly menu: string
}

/** The lifetimes of copied links. Seconds. */
const lifetimes = [3_600, 86_400, 604_800] as const

/** A button that copies links. In a private bucket it opens a menu, which offers links that expire first. */
export function CopyLinks({ label, labelled = false, ids, isPrivate, menu }: CopyLinksProps) {
  const { sharing } = useGallery()
  const content = (
    <>
      <Icon name="link" />
      {labelled && <span>{label}</span>}
    </>
  )
  const button = {
    type: 'button',
    class: labelled ? 'button quiet' : 'icon-button',
    title: label,
    'aria-label': labelled ? undefined : label,
  } as const
  if (!isPrivate)
    return (
      <button {...button} onClick={() => void sharing.copyLinks(ids())}>
        {content}
      </button>
    )
  const choice = {
    type: 'button',
    class: 'button quiet',
    popovertarget: menu,
    popovertargetaction: 'hide',
  } as const
  return (
    <>
      <button {...button} popovertarget={menu}>
        {content}
      </button>
      <div id={menu} class="menu" popover="auto">
        <p>{strings.link.forEveryone}</p>
        {lifetimes.map((seconds) => (
          <button key={seconds} {...choice} onClick={() => void sharing.copyExpiringLinks(ids(), seconds)}>
            {strings.link.validFor(strings.link.lifetime(seconds / 3_600))}
          </button>
        ))}
        <p>{strings.link.forTokens}</p>
        <button {...choice} onClick={() => void sharing.copyLinks(ids())}>
          {strings.link.withoutExpiry}
        </button>
        <NamesChoice />
      </div>
    </>
  )
}
