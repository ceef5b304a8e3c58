import type { ComponentChildren } from 'preact'
import { useContext } from 'preact/hooks'
import { BucketContext, useGallery } from '../gallery-context.ts'
import { strings } from '../strings.ts'
import { IconButton } from './controls.tsx'
import { Icon } from './icon.tsx'

interface SectionHeadProps {
  readonly title: string
  readonly about: string
  /** Buttons. */
  readonly children: ComponentChildren
}

/** The page from which another one was opened. */
function useParent(): { readonly label: string; open(): void } {
  const bucket = useContext(BucketContext)
  if (bucket) return bucket.parent
  const { router } = useGallery()
  return { label: strings.back, open: () => router.go({ item: null }) }
}

/** The title of what is shown instead of files, and the way back to them. */
export function SectionHead({ title, about, children }: SectionHeadProps) {
  const parent = useParent()
  return (
    <div class="listing-head">
      <IconButton class="back" icon="previous" label={parent.label} onClick={() => parent.open()} />
      <h1>{title}</h1>
      <p class="muted">{about}</p>
      <div class="listing-tools">{children}</div>
    </div>
  )
}

interface LoadErrorProps {
  readonly title: string
  readonly reason: string
  readonly onRetry: () => void
}

/** Why a list could not be loaded. */
export const LoadError = ({ title, reason, onRetry }: LoadErrorProps) => (
  <div class="state" role="alert">
    <Icon name="alert" size={40} />
    <h2>{title}</h2>
    <p>{reason}</p>
    <button type="button" class="button primary" onClick={onRetry}>
      {strings.tryAgain}
    </button>
  </div>
)
