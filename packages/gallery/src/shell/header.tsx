import { useRef, useState } from 'preact/hooks'
import { FileButton } from '../components/controls.tsx'
import { Icon, type IconName, Logo } from '../components/icon.tsx'
import { Modal } from '../components/modal.tsx'
import { formatSize } from '../format.ts'
import { useGallery } from '../gallery-context.ts'
import { DisplaySettings } from '../preferences.tsx'
import type { Section } from '../router.ts'
import { formatCount } from '../strings/locale.ts'
import { strings } from '../strings.ts'

export function Header() {
  const { uploads, signOut, origin } = useGallery()
  const [confirming, setConfirming] = useState(false)
  return (
    <header class="header">
      <Wordmark />
      {origin !== null && (
        <a
          class="button to-buckets"
          href={origin}
          aria-label={strings.buckets.backToBuckets}
          title={strings.buckets.backToBuckets}
        >
          <Icon name="previous" />
          <span class="sign-out-label">{strings.buckets.title}</span>
        </a>
      )}
      <UsageMeter />
      <div class="header-actions">
        {uploads.allowed && (
          <>
            <FileButton
              class="button folder-button"
              folder
              label={strings.header.uploadFolder}
              onChoose={(files) => void uploads.add(files)}
            >
              <Icon name="folder" />
            </FileButton>
            <FileButton class="button primary" onChoose={(files) => void uploads.add(files)}>
              <Icon name="upload" />
              <span class="off-screen-narrow">{strings.header.upload}</span>
            </FileButton>
          </>
        )}
        <SettingsMenu />
        <SignOutButton
          onClick={() => (uploads.view.value.totals.left > 0 ? setConfirming(true) : signOut())}
        />
      </div>
      {confirming && <SignOutDialog onStay={() => setConfirming(false)} />}
    </header>
  )
}

export function Wordmark() {
  return (
    <p class="wordmark">
      <Logo />
      <span>{strings.product}</span>
    </p>
  )
}

export function SignOutButton({ onClick }: { onClick: () => void }) {
  return (
    <button
      type="button"
      class="button sign-out"
      aria-label={strings.header.signOut}
      title={strings.header.signOut}
      onClick={onClick}
    >
      <Icon name="exit" />
      <span class="sign-out-label">{strings.header.signOut}</span>
    </button>
  )
}

/** Opens the element with the id `settings`. */
export function SettingsButton() {
  return (
    <button
      type="button"
      class="icon-button"
      popovertarget="settings"
      aria-label={strings.settings.label}
      title={strings.settings.label}
    >
      <Icon name="settings" />
    </button>
  )
}

/** Asks for confirmation during uploads, because signing out cancels them. */
function SignOutDialog({ onStay }: { onStay: () => void }) {
  const { uploads, signOut } = useGallery()
  return (
    <Modal class="dialog" labelledBy="sign-out-title" onCancel={onStay}>
      <h2 id="sign-out-title">{strings.signOut.title}</h2>
      <p>{strings.signOut.about(uploads.view.value.totals.left)}</p>
      <div class="dialog-actions">
        <button type="button" class="button" onClick={onStay}>
          {strings.signOut.stay}
        </button>
        <button type="button" class="button danger" onClick={signOut}>
          {strings.signOut.leave}
        </button>
      </div>
    </Modal>
  )
}

/** A button that opens the settings of this browser. */
function SettingsMenu() {
  const { preferences, usage, canDelete, offers, router } = useGallery()
  const { trash_days = 0, trash_items = 0 } = usage.bucket.value ?? {}
  const menu = useRef<HTMLDivElement>(null)
  const link = (section: Section, icon: IconName, count?: number) => (
    <a
      class="button"
      href={router.hashOf({ item: null, section })}
      onClick={() => menu.current?.hidePopover()}
    >
      <Icon name={icon} />
      {strings.sections[section]}
      {count !== undefined && <span class="muted">{formatCount(count)}</span>}
    </a>
  )
  return (
    <>
      <SettingsButton />
      <div ref={menu} id="settings" class="menu settings" popover="auto">
        <DisplaySettings preferences={preferences} />
        {offers('tokens') && link('tokens', 'key')}
        {offers('webhooks') && link('webhooks', 'send')}
        {canDelete && (trash_days > 0 || trash_items > 0) && link('trash', 'trash', trash_items)}
      </div>
    </>
  )
}

/** The bytes and files of the bucket, and its limits. The meter shows the limit that is closest. */
function UsageMeter() {
  const { usage } = useGallery()
  const bucket = usage.bucket.value
  if (bucket === null) return <div class="usage" />
  const { bytes, max_bytes, items, max_items } = bucket
  const text = [
    max_bytes === null
      ? strings.header.used(formatSize(bytes))
      : strings.header.usedOf(formatSize(bytes), formatSize(max_bytes)),
    ...(max_items === null ? [] : [strings.header.itemsOf(items, max_items)]),
  ].join(' · ')
  const shares = [
    ...(max_bytes === null ? [] : [bytes / Math.max(max_bytes, 1)]),
    ...(max_items === null ? [] : [items / Math.max(max_items, 1)]),
  ]
  const share = Math.min(1, Math.max(0, ...shares))
  return (
    <div class="usage">
      <span>{text}</span>
      {shares.length > 0 && (
        <meter
          class="usage-meter"
          aria-label={strings.header.usage}
          min={0}
          max={1}
          high={0.9}
          value={share}
        />
      )}
    </div>
  )
}
