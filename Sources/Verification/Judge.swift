// The judgement of a whole history.

/// Judges what the processes of a run have recorded. A pure function: the same history has the same verdict.
package enum Judge {
    /// Returns the verdict on a history.
    package static func judge(_ history: RunHistory) -> Verdict {
        let announcements = Announcements(history.events)
        var exclusion = ExclusionCheck(.exclusion, of: .lock)
        var permits = ExclusionCheck(.permits, of: .lease)
        var fences = FenceCheck()
        for (resource, claims) in RecordedClaim.all(in: history.events) {
            exclusion.check(resource, claims, announcements)
            permits.check(resource, claims, announcements)
            fences.check(resource, claims, announcements)
        }
        var conservation = ConservationCheck(announcements, ttl: history.header.ttl)
        conservation.check(history.events)
        var release = ReleaseCheck()
        release.check(history.events)
        var barriers = BarrierCheck()
        barriers.check(history.events, announcements)
        let mail = MailCheck(history.events, announcements)
        let findings = [
            exclusion.finding, permits.finding, fences.finding, conservation.finding, release.finding,
            barriers.finding, mail.order, mail.delivery, mail.atomicity, losses(history.events),
        ]
        let promises = Set(Promise.promises(of: history.header))
        return Verdict(findings.filter { promises.contains($0.promise) }, Statistics(history.events))
    }

    /// Every loss that was announced, where nothing may be lost.
    private static func losses(_ events: [Event]) -> Finding {
        var finding = Finding(.losses)
        for event in events {
            switch event.kind {
            case .enter, .got: finding.checks += 1
            case .end where event.outcome == .ok: finding.checks += 1
            case .dataLost, .sessionLost:
                // A session that has expired is no loss of data.
                if event.kind == .sessionLost, event.note != "dataLost" { continue }
                finding.add(.missing, "process \(event.process) was notified at \(event.time) that data is lost")
            case .gap:
                let reader = "\(event.resource ?? ""), device \(event.device ?? "")"
                finding.add(.missing, "\(reader): a gap (\(event.note ?? "")) at \(event.time)")
            default: break
            }
        }
        return finding
    }
}
