import { useState } from 'preact/hooks'
import { Icon } from '../components/icon.tsx'
import { useGallery } from '../gallery-context.ts'
import { strings } from '../strings.ts'
import { useCode } from '../use-code.ts'

/** Creates an upload link, or says which scopes that needs. `small` shows an icon only on small screens. */
export function AskButton({ small = false }: { small?: boolean }) {
  const { canAsk } = useGallery()
  const [open, setOpen] = useState(false)
  if (!canAsk) return null
  const label = strings.listing.ask
  return (
    <>
      <button
        type="button"
        class={small ? 'button small ask' : 'button'}
        title={label}
        onClick={() => setOpen(true)}
      >
        <Icon name="inbox" />
        <span class={small ? 'off-screen-narrow' : undefined}>{label}</span>
      </button>
      {open && <AskFlow onClose={() => setOpen(false)} />}
    </>
  )
}

/** The dialogs, when their code is loaded. */
function AskFlow({ onClose }: { onClose: () => void }) {
  const dialogs = useCode(() => import('./ask-dialogs.tsx'), 'labels', 'links', 'tokens')
  if (dialogs === 'loading') return null
  return dialogs === 'failed' ? (
    <p role="alert">{strings.notLoaded}</p>
  ) : (
    <dialogs.AskDialogs onClose={onClose} />
  )
}
